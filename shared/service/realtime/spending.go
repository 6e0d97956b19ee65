package realtime

import (
	"context"
	"time"

	"cutroom/shared/domain/budget"
	"cutroom/shared/domain/fault"
)

// Budgets reserves amounts for sessions, as budget.Manager does.
type Budgets interface {
	Find(ctx context.Context, account, key string) ([]budget.Budget, error)
	Reserve(ctx context.Context, found []budget.Budget, most budget.Amounts) (*budget.Reservation, error)
}

// pieces lists how many seconds to try to reserve ahead, in order.
var pieces = [...]int64{60, 15, 5, 1}

const spendAgain = time.Second

// spending reserves a session's budget piece by piece.
type spending struct {
	budgets  Budgets
	admitted admission
	// piece covers the session's seconds from the time in from to the time in until.
	piece       *budget.Reservation
	from, until int64
}

// reserve reserves a session's first piece. The error is a rejection.
func (s *Server) reserve(ctx context.Context, admitted admission) (*spending, error) {
	p := &spending{budgets: s.config.Budgets, admitted: admitted}
	err := p.next(ctx)
	switch {
	case err == nil:
		return p, nil
	case fault.Is(err, fault.Exhausted):
		return nil, overBudget
	}
	s.config.Logger.Error("cannot reserve budget for a session", "account", admitted.who.Account(), "error", err)
	return nil, cannotOpen
}

// next reserves the next piece and, if that succeeds, settles the previous one as fully used.
//
// Errors: fault.Exhausted if less than a second is left in a budget.
func (p *spending) next(ctx context.Context) error {
	if p.budgets == nil {
		p.until += pieces[0]
		return nil
	}
	who := p.admitted.who
	found, err := p.budgets.Find(ctx, who.Account(), who.Key.ID)
	if err != nil {
		return err
	}
	for _, seconds := range pieces {
		var piece *budget.Reservation
		if piece, err = p.budgets.Reserve(ctx, found, p.amounts(seconds)); err == nil {
			p.piece.Settle(ctx, p.amounts(p.until-p.from))
			p.piece, p.from, p.until = piece, p.until, p.until+seconds
			return nil
		}
		if !fault.Is(err, fault.Exhausted) {
			return err
		}
	}
	return err
}

func (p *spending) end(ctx context.Context, seconds int64) {
	p.piece.Settle(ctx, p.amounts(max(seconds-p.from, 0)))
}

func (p *spending) amounts(seconds int64) budget.Amounts {
	return budget.Amounts{SessionSeconds: seconds, Cost: costOf(p.admitted.model, seconds)}
}

// spend reserves pieces one after another. It ends the session when a budget runs out.
func (c *connection) spend() {
	pause := time.Duration(0)
	for {
		timer := time.NewTimer(max(time.Until(c.began.Add(time.Duration(c.spending.until)*time.Second)), pause))
		select {
		case <-c.life.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := c.spending.next(c.wire)
		switch {
		case err == nil:
			pause = 0
		case fault.Is(err, fault.Exhausted):
			// Time after this is not billed.
			c.most.Store(c.spending.until)
			c.end(endedByBudget)
			return
		default:
			pause = spendAgain
			c.server.config.Logger.Warn("cannot reserve budget for a session; trying again",
				"session", c.session.ID(), "error", err)
		}
	}
}
