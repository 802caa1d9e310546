"sha256-GvG1omxQlPdJufoNeLdci+07useM5fxQt+dCSmrnC3g="
