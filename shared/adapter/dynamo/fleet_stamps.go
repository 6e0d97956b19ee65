package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/fleet"
)

// FleetStamps keeps the stamp of the fleet of workers, in the table of the jobs. It
// is a fleet.Stamps.
type FleetStamps struct {
	client *dynamodb.Client
	table  string
}

var _ fleet.Stamps = (*FleetStamps)(nil)

// NewFleetStamps returns the stamp that the table of the jobs holds.
func NewFleetStamps(client *dynamodb.Client, table string) *FleetStamps {
	return &FleetStamps{client, table}
}

// fleetKey is the key of the stamp. A wake and a look write different attributes of
// it, so neither overwrites what the other has written.
func fleetKey() item { return jobKey("fleet", "stamp") }

// Read implements fleet.Stamps by one consistent read.
func (s *FleetStamps) Read(ctx context.Context) (fleet.Stamp, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: fleetKey(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return fleet.Stamp{}, storeError("read the fleet's stamp", err)
	}
	r := reader{item: found.Item}
	stamp := fleet.Stamp{WokenAt: r.moment("woken_at"), ExcessSince: r.moment("excess_since")}
	return stamp, r.err
}

// Wake implements fleet.Stamps by one write.
func (s *FleetStamps) Wake(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: fleetKey(),
		UpdateExpression:          aws.String("SET #woken_at = :at"),
		ConditionExpression:       aws.String("attribute_not_exists(#woken_at) OR #woken_at < :at"),
		ExpressionAttributeNames:  named("woken_at"),
		ExpressionAttributeValues: item{":at": moment(at)},
	})
	if _, failed := conditionFailed(err); failed {
		return nil // a later wake is recorded
	}
	return storeError("record a wake", err)
}

// SetExcess implements fleet.Stamps by one write.
func (s *FleetStamps) SetExcess(ctx context.Context, since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	update := &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: fleetKey(),
		UpdateExpression:         aws.String("REMOVE #excess_since"),
		ExpressionAttributeNames: named("excess_since"),
	}
	if !since.IsZero() {
		update.UpdateExpression = aws.String("SET #excess_since = :since")
		update.ExpressionAttributeValues = item{":since": moment(since)}
	}
	_, err := s.client.UpdateItem(ctx, update)
	return storeError("record idle workers", err)
}
