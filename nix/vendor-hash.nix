"sha256-IEnVPf76+XDDCoqyE17KkSIcewuFZE/xrLwh4WyHxlM="
