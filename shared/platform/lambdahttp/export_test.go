package lambdahttp

// What the tests call without a process around it.
var (
	Stream    = stream
	PathBelow = pathBelow
)
