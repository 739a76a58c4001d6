"""Cases of every operator, made from its definition, with their exact results."""
