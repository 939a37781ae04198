"""Networks: feed-forward recognition, and the joint training of stacks of factor layers."""
