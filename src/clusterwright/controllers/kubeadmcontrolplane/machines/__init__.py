"""The Machines of a control plane: as decisions see them, what they should be, and what is done to them."""
