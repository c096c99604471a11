package fila

// redirect remembers that another node leads a queue and returns the link to it, nil if there is no
// sense in following. The new connection has the same TLS settings and key: what was asked to be
// encrypted stays encrypted.
func (c *Client) redirect(from *link, queue, leader string) *link {
	addr, _, err := parseAddress(leader)
	if err != nil || addr == from.addr {
		return nil
	}
	next := c.moveTo(queue, addr)
	if next != nil {
		c.cfg.logger.Info("fila: redirected to the leader", "queue", queue, "from", from.addr, "to", addr)
		c.announce(Event{Kind: EventRedirected, Addr: addr})
	}
	return next
}

// moveTo is the link to a node, from now on also for the queue; nil if the client is closed.
func (c *Client) moveTo(queue, addr string) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	next := c.seed
	if addr != c.seed.addr {
		if next = c.leaders[addr]; next == nil {
			next = newLink(c, addr, false)
			c.leaders[addr] = next
			go next.run(nil)
		}
	}
	if queue != "" {
		if next == c.seed {
			delete(c.routes, queue)
		} else {
			c.routes[queue] = next
		}
	}
	return next
}

// route is the link for a queue.
func (c *Client) route(queue string) *link {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if l := c.routes[queue]; l != nil {
		return l
	}
	return c.seed
}

// forget takes a leader's link out of the routes.
func (c *Client) forget(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leaders, l.addr)
	for queue, via := range c.routes {
		if via == l {
			delete(c.routes, queue)
		}
	}
}

// retire ends a leader's link and gives what it had to the seed, which knows who leads now. A leader
// that can never be talked to (its certificate is wrong, it refuses the key) fails it all instead.
func (l *link) retire(reason *Error, wasOpen bool) {
	c := l.client
	if !wasOpen && final(reason) {
		c.forget(l)
		l.end(reason)
		return
	}
	if !wasOpen {
		// The seed may go on naming a node that is gone until another is elected.
		l.mu.Lock()
		hops := l.hopsLocked()
		l.mu.Unlock()
		if !l.sleep(shortened(c.cfg.pauseAfter(hops))) {
			return
		}
	}
	c.forget(l)
	l.mu.Lock()
	l.ended = reason
	items, requests, streams := l.takeAll()
	l.mu.Unlock()
	for _, i := range items {
		if !c.seed.submit(i.call.kind, []item{i}) {
			c.failItems(i.call.kind, []item{i}, reason)
		}
	}
	for _, r := range requests {
		if !c.seed.ask(r) {
			r.done <- reason.during(r.op)
		}
	}
	for _, s := range streams {
		if !c.seed.subscribe(s) {
			s.fail(reason)
		}
	}
}

// hopsLocked is how often what waits here has been sent on, at most.
func (l *link) hopsLocked() int {
	hops := 0
	for k := range l.collectors {
		for _, i := range l.collectors[k].items {
			hops = max(hops, i.hops)
		}
	}
	for r := range l.requests {
		hops = max(hops, r.hops)
	}
	for s := range l.streams {
		s.mu.Lock()
		hops = max(hops, s.hops)
		s.mu.Unlock()
	}
	return hops
}

func (c *Client) failItems(k kind, items []item, err *Error) {
	for _, i := range items {
		i.fail(err)
	}
	if k.enqueues() {
		c.gate.leave(sizeOf(items))
	}
}

// links are all links of the client; once closed, the list does not grow.
func (c *Client) links() []*link {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := []*link{c.seed}
	for _, l := range c.leaders {
		all = append(all, l)
	}
	return all
}
