package lambdahttp

// These are called by the tests without a process around them.
var (
	Stream    = stream
	PathBelow = pathBelow
)
