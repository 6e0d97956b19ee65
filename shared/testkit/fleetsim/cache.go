package fleetsim

import "container/list"

// cache keeps blocks, and forgets those that were used longest ago. A block is of
// use only together with those before it, so the end of a prompt goes first.
type cache struct {
	room  int
	order *list.List
	at    map[uint64]*list.Element
}

func newCache(room int) cache {
	return cache{room, list.New(), map[uint64]*list.Element{}}
}

// match is how many blocks at the beginning of a prompt are cached.
func (c *cache) match(prompt []uint64) int {
	for i, block := range prompt {
		if c.at[block] == nil {
			return i
		}
	}
	return len(prompt)
}

// add keeps a prompt.
func (c *cache) add(prompt []uint64) {
	for i := len(prompt) - 1; i >= 0; i-- {
		if known := c.at[prompt[i]]; known != nil {
			c.order.MoveToFront(known)
			continue
		}
		c.at[prompt[i]] = c.order.PushFront(prompt[i])
	}
	for c.order.Len() > c.room {
		delete(c.at, c.order.Remove(c.order.Back()).(uint64))
	}
}
