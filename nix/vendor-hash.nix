"sha256-Fs3+3eVrp1kSXWuxfwda4qlJ41vmyIPBaIu6ADmP4Hs="
