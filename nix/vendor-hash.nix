"sha256-dPGEzqOz1P0TxSSMKHvjgeC4TlbbFwD7yB9X+drC1gk="
