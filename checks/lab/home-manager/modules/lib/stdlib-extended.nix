# home-manager adds functions of its own to lib; our module needs none.
lib: lib
