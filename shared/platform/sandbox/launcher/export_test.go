package launcher

var Parse = parse
