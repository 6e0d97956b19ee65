package vp8

func (c *Codec) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.helper == nil {
		return 0
	}
	return c.helper.cmd.Process.Pid
}
