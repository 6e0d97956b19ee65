package tokenizer

// merge encodes a piece of text by byte pair encoding. It starts with single bytes and repeatedly
// joins the two neighbors whose token has the lowest id. It takes O(n log n) steps for n bytes.
func (v *vocabulary) merge(piece string, yield func(id uint32)) {
	if id := v.find(piece); id != none {
		yield(id)
		return
	}
	// A part is stored at the index of its first byte. The last part is empty.
	parts := make([]part, len(piece)+1)
	for i := range parts {
		parts[i] = part{next: i + 1, previous: i - 1, pair: none}
	}
	var waiting pairs
	consider := func(i int) {
		p := &parts[i]
		p.pair = none
		if p.next < len(piece) {
			if p.pair = v.find(piece[i:parts[p.next].next]); p.pair != none {
				waiting.push(pair(p.pair)<<32 | pair(i))
			}
		}
	}
	for i := range len(piece) {
		consider(i)
	}
	for len(waiting) > 0 {
		lowest := waiting.pop()
		i := int(lowest & none)
		if parts[i].pair != uint32(lowest>>32) {
			continue // one of the two neighbors has already been joined to another part
		}
		gone := parts[i].next
		parts[gone].pair = none
		parts[i].next = parts[gone].next
		parts[parts[i].next].previous = i
		consider(i)
		if before := parts[i].previous; before >= 0 {
			consider(before)
		}
	}
	for i := 0; i < len(piece); i = parts[i].next {
		yield(v.find(piece[i:parts[i].next]))
	}
}

// part contains the offsets of its neighbors, and the id of the token that it forms with the next
// part, or the constant none.
type part struct {
	next, previous int
	pair           uint32
}

// pair is a candidate for joining: a token id and the first part's offset, as 32 bits each.
type pair uint64

// pairs is a binary heap with the lowest pair at the top. Unlike container/heap, it does not allocate.
type pairs []pair

func (h *pairs) push(p pair) {
	*h = append(*h, p)
	all := *h
	for i := len(all) - 1; i > 0; {
		parent := (i - 1) / 2
		if all[parent] <= all[i] {
			return
		}
		all[parent], all[i] = all[i], all[parent]
		i = parent
	}
}

func (h *pairs) pop() pair {
	all := *h
	lowest, last := all[0], len(all)-1
	all[0] = all[last]
	all = all[:last]
	*h = all
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(all) {
			return lowest
		}
		if child+1 < len(all) && all[child+1] < all[child] {
			child++
		}
		if all[i] <= all[child] {
			return lowest
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}
