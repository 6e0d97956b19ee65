package fakeaws

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
)

// tokenAge is how long DynamoDB remembers a transaction's token.
const tokenAge = 10 * time.Minute

// mostParsed limits the number of parsed expressions that are kept.
const mostParsed = 10_000

// DynamoDB keeps tables in memory and counts capacity units per partition key.
type DynamoDB struct {
	clock Clock

	mu         sync.Mutex
	tables     map[string]*table
	meter      *meter
	conditions map[string]condition
	updates    map[string]update
	// tokens maps the tokens of completed transactions to their times. recent lists the tokens in order.
	tokens map[string]time.Time
	recent []string
	// locks holds the items locked by transactions. The fields now and turn belong to the current attempt. rejected
	// is the last partition that rejected an attempt.
	locks    locks
	now      time.Time
	turn     int64
	rejected string
}

func newDynamoDB(clock Clock, tables []dynamo.Table) *DynamoDB {
	d := &DynamoDB{
		clock: clock, tables: map[string]*table{}, meter: newMeter(),
		conditions: map[string]condition{}, updates: map[string]update{}, tokens: map[string]time.Time{},
		locks: locks{},
	}
	for _, t := range tables {
		d.tables[t.Name] = newTable(t)
	}
	return d
}

// Limit makes partitions reject calls that exceed their capacity per second. There are no bursts,
// because DynamoDB does not guarantee them.
func (d *DynamoDB) Limit(on bool) { d.meter.limited = on }

func (d *DynamoDB) Hottest() []Heat { return d.meter.hottest() }

// Totals returns the usage of each table and index.
func (d *DynamoDB) Totals() map[string]Total {
	d.meter.close()
	all := map[string]Total{}
	for name, t := range d.meter.total {
		all[name] = *t
	}
	return all
}

// Forget removes all items with a partition key without counting units, like the TTL.
func (d *DynamoDB) Forget(name, hash string) {
	t := d.tables[name]
	p := t.partitions[hash]
	if p == nil {
		return
	}
	for _, sort := range append([]string(nil), p.keys...) {
		t.set(hash, sort, p.of[sort], nil)
	}
}

// Item returns an item, or nil if it does not exist, without counting units.
func (d *DynamoDB) Item(name, hash, sort string) map[string]types.AttributeValue {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tables[name].get(hash, sort)
}

// Items returns a partition's items without counting units.
func (d *DynamoDB) Items(name, hash string) (all []map[string]types.AttributeValue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.tables[name].partitions[hash]
	if p == nil {
		return nil
	}
	for _, key := range p.keys {
		all = append(all, p.of[key])
	}
	return all
}

func (d *DynamoDB) call(input any) (answer any, err error, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempt(input, d.clock.Now(), d.clock.Turn())
}

// attempt makes one attempt at a call. Its time may be ahead of the clock.
func (d *DynamoDB) attempt(input any, at time.Time, turn int64) (answer any, err error, known bool) {
	d.now, d.turn = at, turn
	if d.meter.at(d.clock.Now().Unix(), at.Unix()) {
		d.locks.forget(d.clock.Now())
	}
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		answer, err = d.getItem(in)
	case *dynamodb.BatchGetItemInput:
		answer, err = d.batchGet(in)
	case *dynamodb.QueryInput:
		answer, err = d.query(in)
	case *dynamodb.PutItemInput:
		answer, err = d.putItem(in)
	case *dynamodb.UpdateItemInput:
		answer, err = d.updateItem(in)
	case *dynamodb.TransactWriteItemsInput:
		answer, err = d.transact(in)
	default:
		return nil, nil, false
	}
	return answer, err, true
}

func (d *DynamoDB) throttled(p partition) error {
	d.meter.of(p.table).Throttled++
	d.rejected = p.key
	return &types.ProvisionedThroughputExceededException{Message: aws.String("The partition is busy.")}
}

func (d *DynamoDB) getItem(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	t := d.tables[*in.TableName]
	hash, sort := t.keyOf(in.Key)
	p := partition{t.Name, hash}
	if !d.meter.fits(p) {
		return nil, d.throttled(p)
	}
	found := t.get(hash, sort)
	d.meter.read(p, readUnits(sizeOf(found), in.ConsistentRead))
	return &dynamodb.GetItemOutput{Item: found}, nil
}

func (d *DynamoDB) batchGet(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]item{}}
	for name, asked := range in.RequestItems {
		t := d.tables[name]
		for _, key := range asked.Keys {
			hash, sort := t.keyOf(key)
			p := partition{t.Name, hash}
			if !d.meter.fits(p) {
				return nil, d.throttled(p)
			}
			found := t.get(hash, sort)
			d.meter.read(p, readUnits(sizeOf(found), asked.ConsistentRead))
			if found != nil {
				out.Responses[name] = append(out.Responses[name], found)
			}
		}
	}
	return out, nil
}

func (d *DynamoDB) query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	t := d.tables[*in.TableName]
	name, partitions, hashName := t.Name, t.partitions, t.PartitionKey
	var index *dynamo.Index
	if in.IndexName != nil {
		for i := range t.Indexes {
			if t.Indexes[i].Name == *in.IndexName {
				index = &t.Indexes[i]
			}
		}
		name, partitions, hashName = t.Name+"/"+index.Name, t.indexes[index.Name], index.PartitionKey
	}
	sc := scope{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}
	hash := hashIn(*in.KeyConditionExpression, hashName, sc)
	p := partition{name, hash}
	if !d.meter.fits(p) {
		return nil, d.throttled(p)
	}
	after := ""
	if start := in.ExclusiveStartKey; start != nil {
		_, after = t.keyOf(start)
		if index != nil {
			startHash, startSort := t.keyOf(start)
			after = textOf(start[index.SortKey]) + "\x00" + startHash + "\x00" + startSort
		}
	}
	backward := in.ScanIndexForward != nil && !*in.ScanIndexForward
	found, last := partitions[hash].find(d.condition(*in.KeyConditionExpression), sc, after, backward,
		int(aws.ToInt32(in.Limit)))
	size := 0
	for _, i := range found {
		size += sizeOf(i)
	}
	d.meter.read(p, readUnits(size, in.ConsistentRead))
	out := &dynamodb.QueryOutput{Items: found, Count: int32(len(found))}
	if last != "" {
		out.LastEvaluatedKey = found[len(found)-1]
	}
	return out, nil
}

func hashIn(text, attribute string, sc scope) string {
	words := tokens.FindAllString(text, -1)
	for i, word := range words {
		if i+2 < len(words) && sc.name(word) == attribute && words[i+1] == "=" {
			return textOf(sc.values[words[i+2]])
		}
	}
	panic("fakeaws: the key condition " + text + " has no partition key")
}

func (d *DynamoDB) condition(text string) condition {
	c := d.conditions[text]
	if c == nil {
		c = parseCondition(text)
		if len(d.conditions) < mostParsed {
			d.conditions[text] = c
		}
	}
	return c
}

func (d *DynamoDB) update(text string) update {
	u := d.updates[text]
	if u == nil {
		u = parseUpdate(text)
		if len(d.updates) < mostParsed {
			d.updates[text] = u
		}
	}
	return u
}
