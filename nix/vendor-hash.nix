"sha256-WgpxbFXO0cNlnMIL44dYOpxBJ/agl4GYDww2/nlYGFA="
