"""Deep belief networks: directed layers under a restricted Boltzmann machine."""
