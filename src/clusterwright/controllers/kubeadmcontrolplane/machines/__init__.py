"""The Machines of a control plane: their state, their desired state, and the actions on them."""
