package launcher

// Parse reads the arguments that follow the launcher's name.
var Parse = parse
