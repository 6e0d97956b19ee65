package lambdahttp

// The tests call these without a process.
var (
	Stream    = stream
	PathBelow = pathBelow
)
