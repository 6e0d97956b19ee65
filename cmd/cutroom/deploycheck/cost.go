package deploycheck

// spent counts what a run costs.
type spent struct {
	// requests are calls of both services, jobs those that were accepted.
	requests, jobs int
	// stored and received are bytes.
	stored, received int64
}

// List prices in US East (N. Virginia), in US dollars, rounded up: docs/cost.md says how
// they come about.
const (
	requestPrice = 0.00002
	jobPrice     = 0.00015
	bytePrice    = 0.09 / (1 << 30)
	// workerPrice is of the preview workers: four for half an hour.
	workerPrice = 4 * 0.5 * 0.09
)

// cost returns what the run has cost at most at list price, in US dollars. What engine
// servers on GPUs and model servers cost is not in it.
func (v *visit) cost() float64 {
	s := v.spent
	cost := float64(s.requests)*requestPrice + float64(s.jobs)*jobPrice + float64(s.received)*bytePrice
	if s.jobs > 0 {
		cost += workerPrice
	}
	return cost
}
