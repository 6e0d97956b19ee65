package lambdahttp

var (
	Stream    = stream
	PathBelow = pathBelow
)
