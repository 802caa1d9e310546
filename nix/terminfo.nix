# The terminals that people use, in one folder. kitty, ghostty and foot are
# newer than ncurses' own list, or name themselves differently.
{
  lib,
  foot,
  ghostty,
  kitty,
  ncurses,
  symlinkJoin,
}:
symlinkJoin {
  name = "claudebox-terminfo";
  paths = [ ncurses ] ++ map (terminal: lib.getOutput "terminfo" terminal) [ kitty ghostty foot ];
}
