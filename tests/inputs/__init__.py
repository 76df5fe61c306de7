"""Small inputs on which users of model servers stumble, each given to the whole server."""
