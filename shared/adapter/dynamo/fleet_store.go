package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"cutroom/shared/domain/fleet"
	"cutroom/shared/domain/job"
)

type FleetStore struct {
	client *dynamodb.Client
	table  string
}

var _ fleet.Store = (*FleetStore)(nil)

func NewFleetStore(client *dynamodb.Client, table string) *FleetStore {
	return &FleetStore{client, table}
}

// Wakes and checks write different attributes of this item, so neither overwrites the other.
func fleetKey() item { return jobKey("fleet", fleetPart) }

const fleetPart = "stamp"

func (s *FleetStore) Read(ctx context.Context) (fleet.State, error) {
	found, err := readItem(ctx, s.client, s.table, fleetKey())
	if err != nil {
		return fleet.State{}, storeError("read the state of the fleet", err)
	}
	r := reader{item: found}
	state := fleet.State{WokenAt: r.moment("woken_at"), ExcessSince: r.moment("excess_since"), Fleet: r.fleet()}
	return state, r.err
}

func (r *reader) fleet() job.Fleet {
	return job.Fleet{
		SeenAt: r.moment("seen_at"), Running: int(r.number("running")), Wanted: int(r.number("wanted")),
		Most: int(r.number("most")), WantedSince: r.moment("wanted_since"), ShortSince: r.moment("short_since"),
		StartTime: milliseconds(r.number("start_millis")),
	}
}

func (s *FleetStore) Wake(ctx context.Context, at time.Time) error {
	_, _, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: fleetKey(), UpdateExpression: aws.String("SET #woken_at = :at"),
		ConditionExpression:      aws.String("attribute_not_exists(#woken_at) OR #woken_at < :at"),
		ExpressionAttributeNames: named("woken_at"), ExpressionAttributeValues: item{":at": moment(at)},
	})
	return storeError("record a wake", err)
}

func (s *FleetStore) Saw(ctx context.Context, excessSince time.Time, seen job.Fleet) error {
	set := "SET #seen_at = :seen_at, #running = :running, #wanted = :wanted, #most = :most, #start_millis = :start_millis"
	names := named("seen_at", "running", "wanted", "most", "start_millis", "excess_since", "wanted_since", "short_since")
	values := item{
		":seen_at": moment(seen.SeenAt), ":running": number(int64(seen.Running)), ":wanted": number(int64(seen.Wanted)),
		":most": number(int64(seen.Most)), ":start_millis": number(seen.StartTime.Milliseconds()),
	}
	var without []string
	for _, of := range []struct {
		name string
		at   time.Time
	}{{"excess_since", excessSince}, {"wanted_since", seen.WantedSince}, {"short_since", seen.ShortSince}} {
		if of.at.IsZero() {
			without = append(without, "#"+of.name)
			continue
		}
		set += fmt.Sprintf(", #%s = :%s", of.name, of.name)
		values[":"+of.name] = moment(of.at)
	}
	if len(without) > 0 {
		set += " REMOVE " + strings.Join(without, ", ")
	}
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: fleetKey(), UpdateExpression: &set, ExpressionAttributeNames: names,
		ExpressionAttributeValues: values,
	})
	return storeError("record the state of the workers", err)
}
