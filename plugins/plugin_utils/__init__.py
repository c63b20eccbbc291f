"""What action plugins of this collection share; runs on the controller."""
