package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithy "github.com/aws/smithy-go/middleware"

	"cutroom/shared/domain/session"
)

// Even an old lease is alive until a process that needs its slots marks it as dead.
const isAlive = "attribute_exists(id) AND attribute_not_exists(dead)"

type lease struct {
	epoch string
	// renewed is when the lease was last renewed, and now is when it was read. Both are the store's
	// times, in seconds since 1970.
	renewed, now int64
	// dead is also true if the lease no longer exists.
	dead    bool
	address string
}

type leaseItem struct {
	ID      string `dynamodbav:"id"`
	Renewed int64  `dynamodbav:"renewed_at"`
	Dead    bool   `dynamodbav:"dead"`
	Address string `dynamodbav:"address"`
}

// alive reports whether the lease's slots still count as taken.
func (l lease) alive() bool {
	return !l.dead && time.Duration(l.now-l.renewed)*time.Second < session.TakeAfter
}

func (s *Sessions) Begin(ctx context.Context, epoch, address string) error {
	return s.renew(ctx, epoch, "attribute_not_exists(dead)", address)
}

func (s *Sessions) Address(ctx context.Context, epoch string) (string, error) {
	leases, err := s.leases(ctx, []string{epoch})
	if err != nil {
		return "", storeError("find an instance", err)
	}
	found := leases[epoch]
	if !found.alive() {
		return "", session.ErrLeaseOver
	}
	return found.address, nil
}

func (s *Sessions) Renew(ctx context.Context, epoch string) error {
	return s.renew(ctx, epoch, isAlive, "")
}

// renew writes the store's time to the lease. DynamoDB has no expression for its current time, but
// every response contains it in whole seconds. The time comes from a request that was sent after
// the renewal started. The lease's time never decreases, so a late write changes nothing.
//
// This ensures that a lease is never taken over too early. Let b be the time at which an instance's last successful
// renewal starts. The instance stops its sessions at b + FenceAfter by its own clock, and closes its clients'
// connections some seconds later (realtime.Times, Close). The time that the renewal wrote, or found, is later than b
// - 1 s, because DynamoDB rounds seconds down. A process that takes over the slots has read a time no earlier than b
// + TakeAfter - 1 s. Between the two lie nine seconds, minus twice the difference between DynamoDB's clocks.
//
// The write that marks an epoch as dead requires that the lease has not been renewed since it was read. A renewal
// requires that the epoch is not dead. So one of the two fails, no matter how late either arrives. Two renewals
// within the same second started less than a second apart, so the same argument applies.
func (s *Sessions) renew(ctx context.Context, epoch, condition, address string) error {
	read, err := s.leases(ctx, []string{epoch})
	if err != nil {
		return storeError("renew a lease", err)
	}
	now := read[epoch].now
	set, names := "SET renewed_at = :now, #ttl = :ttl", map[string]string{"#ttl": ttlAttribute}
	values := item{":now": number(now), ":ttl": number(now + int64(keptLeases.Seconds()))}
	if address != "" {
		set, values[":address"] = set+", address = :address", text(address)
	}
	old, refused, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: leaseKey(epoch), UpdateExpression: aws.String(set),
		ConditionExpression:      aws.String(condition + " AND (attribute_not_exists(renewed_at) OR renewed_at <= :now)"),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if !refused {
		return storeError("renew a lease", err)
	}
	var found leaseItem
	if err := attributevalue.UnmarshalMap(old, &found); err != nil {
		return storeError("renew a lease", err)
	}
	if found.Dead || found.Renewed <= now {
		return session.ErrLeaseOver
	}
	return nil // DynamoDB's clocks differ: the lease already has a later time
}

// After End, the lease's slots no longer count as taken.
func (s *Sessions) End(ctx context.Context, epoch string) error {
	// If the lease never started, the condition fails.
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: leaseKey(epoch), UpdateExpression: aws.String("SET dead = :dead"),
		ConditionExpression:       aws.String("attribute_exists(id)"),
		ExpressionAttributeValues: item{":dead": boolean(true)},
	})
	return storeError("end a lease", err)
}

// kill marks a lease as dead unless it has been renewed. It reports whether the lease is dead, even
// if another process marked it.
func (s *Sessions) kill(ctx context.Context, l lease) (bool, error) {
	_, refused, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: leaseKey(l.epoch), UpdateExpression: aws.String("SET dead = :dead"),
		ConditionExpression:       aws.String("renewed_at = :seen"),
		ExpressionAttributeValues: item{":dead": boolean(true), ":seen": number(l.renewed)},
	})
	return err == nil && !refused, err
}

func (s *Sessions) leases(ctx context.Context, epochs []string) (map[string]lease, error) {
	found := map[string]lease{}
	if len(epochs) == 0 {
		return found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var keys []item
	for _, epoch := range epochs {
		keys = append(keys, leaseKey(epoch))
	}
	now := int64(0)
	for len(keys) > 0 {
		n := min(len(keys), 100)
		got, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: keys[:n], ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, err
		}
		if now, err = storeTime(got.ResultMetadata); err != nil {
			return nil, err
		}
		for _, i := range got.Responses[s.table] {
			var read leaseItem
			if err := attributevalue.UnmarshalMap(i, &read); err != nil {
				return nil, err
			}
			epoch := read.ID[len(leasePrefix):]
			found[epoch] = lease{epoch: epoch, renewed: read.Renewed, dead: read.Dead, address: read.Address}
		}
		keys = append(got.UnprocessedKeys[s.table].Keys, keys[n:]...)
	}
	for _, epoch := range epochs {
		l, known := found[epoch]
		l.epoch, l.now, l.dead = epoch, now, l.dead || !known
		found[epoch] = l
	}
	return found, nil
}

// storeTime returns the time in a DynamoDB response, in seconds since 1970. It is the same clock for all instances.
func storeTime(metadata smithy.Metadata) (int64, error) {
	now, ok := middleware.GetServerTime(metadata)
	if !ok {
		return 0, errors.New("DynamoDB's response has no time")
	}
	return now.Unix(), nil
}

func leaseKey(epoch string) item { return item{"id": text(leasePrefix + epoch)} }
