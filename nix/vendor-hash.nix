"sha256-onKzC2sz3zD5YWzYZ3+/x8p6qI32IbW8fKGAtkzatbM="
