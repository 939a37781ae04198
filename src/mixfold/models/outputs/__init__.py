"""Factor models with a second view: outputs or labels that hang on the same latents."""
