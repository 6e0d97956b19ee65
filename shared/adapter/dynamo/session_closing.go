package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/session"
)

// While clients wait in the account's line, its parts are closed to who comes. Who joins closes
// them all, unless the account says that they are (line_closed). A part is opened by the
// transaction that takes a slot there on the condition that nobody waits, which is noted
// (reopen_count): so nobody says that all are closed who has begun to close them before.

// closeParts closes the parts of an account in whose line somebody waits, unless they are.
func (s *Sessions) closeParts(ctx context.Context, account string, head slotHead) error {
	if head.parts == 0 || head.closed {
		return nil
	}
	if err := s.eachPart(ctx, account, head.parts, "SET line_closed = :one", nil, item{":one": number(1)}); err != nil {
		return err
	}
	condition, values := "attribute_not_exists(reopen_count)", item{":one": number(1)}
	if head.reopens > 0 {
		condition, values[":seen"] = "reopen_count = :seen", number(head.reopens)
	}
	_, err := s.writeOwn(ctx, account, "SET line_closed = :one", condition, values)
	return err
}

// redeemSpread takes a slot of an account with parts for a ticket whose turn it is. It reports
// whether it has; otherwise the account has changed, and is to be read again.
//
// Errors: fault.Limited if there is no slot after all; fault.Conflict if the epoch is dead.
func (s *Sessions) redeemSpread(ctx context.Context, ticket session.Slot, limit int, a accountState) (bool, error) {
	large, most := s.isLarge(limit), capOf(limit)
	if large {
		if raised, err := s.raise(ctx, ticket.Account, a.head, most); raised || err != nil {
			return false, err
		}
		most = min(most, a.head.most)
	}
	writes := []types.TransactWriteItem{s.aliveCheck(ticket.Epoch)}
	at := atAccount
	switch spare := a.spareFor(limit, large); {
	case a.head.open < most && !large:
		writes = append(writes, s.redeemWrite(ticket, limit))
	case a.head.open < most:
		at = firstPart(ticket.ID, a.head.parts)
		g := growth{slot: ticket, limit: limit, at: at, parts: a.head.parts, amount: 1, head: a.head}
		part := types.TransactWriteItem{Update: s.growPart(g, most)}
		writes = append(writes, s.redeemMove(ticket, most, a.head), part)
	case len(spare) > 0:
		at = spare[hashOf(ticket.ID)%uint32(len(spare))]
		// That it is closed is no matter.
		writes = append(writes, s.leaveWrite(ticket), s.takePart(at, ticket, 0))
		writes[2].Update.ExpressionAttributeValues[":limit"] = number(capOf(limit))
	default:
		freed, err := s.freeSpare(ctx, a)
		if err == nil && !freed {
			err = s.stillFull(ctx, a)
		}
		return false, err
	}
	s.note(ticket.ID, at, limit)
	err := transact(ctx, s.client, writes)
	switch r := refused(err); {
	case r == nil:
		return err == nil, err
	case r.failed[0]:
		return false, session.ErrLeaseOver
	}
	return false, nil
}

// redeemMove returns the write that takes a ticket out of its line and moves room for one slot.
func (s *Sessions) redeemMove(ticket session.Slot, most int64, head slotHead) types.TransactWriteItem {
	w := s.leaveWrite(ticket)
	*w.Update.UpdateExpression += ", open_slots :one SET most_slots = :most"
	*w.Update.ConditionExpression += " AND open_slots < :most AND attribute_not_exists(raising_to) AND most_slots = :seen" +
		" AND slot_parts = :parts"
	values := w.Update.ExpressionAttributeValues
	values[":one"], values[":most"], values[":seen"] = number(1), number(most), number(head.most)
	values[":parts"] = number(int64(head.parts))
	return w
}

// leaveWrite returns the write that takes a ticket out of its line.
func (s *Sessions) leaveWrite(ticket session.Slot) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: accountKey(ticket.Account),
		UpdateExpression:          aws.String("REMOVE #ticket ADD #waiting :less"),
		ConditionExpression:       aws.String("attribute_exists(#ticket)"),
		ExpressionAttributeNames:  map[string]string{"#ticket": ticketName(ticket), "#waiting": waitingCount},
		ExpressionAttributeValues: item{":less": number(-1)},
	}}
}
