package fakeaws

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type write struct {
	table      *table
	hash, sort string
	condition  *string
	names      map[string]string
	values     item
	// item is the complete new item. update changes the existing item. A write with neither of them removes the item,
	// or only checks it if check is set.
	item    item
	update  *string
	check   bool
	wantOld bool
}

// before returns the current item, and whether the write's condition is met.
func (d *DynamoDB) before(w write) (item, bool) {
	found := w.table.get(w.hash, w.sort)
	if w.condition == nil {
		return found, true
	}
	return found, d.condition(*w.condition)(scope{found, w.names, w.values})
}

// make performs the write and returns the new item. It multiplies the units by the factor in each.
func (d *DynamoDB) make(w write, before item, each float64) item {
	p := partition{w.table.Name, w.hash}
	after := before
	switch {
	case w.check:
	case w.item != nil:
		after = w.item
	case w.update != nil:
		after = maps.Clone(before)
		if after == nil {
			after = item{w.table.PartitionKey: &types.AttributeValueMemberS{Value: w.hash}}
			if w.table.SortKey != "" {
				after[w.table.SortKey] = &types.AttributeValueMemberS{Value: w.sort}
			}
		}
		for _, change := range d.update(*w.update) {
			change(scope{before, w.names, w.values}, after)
		}
	default:
		after = nil
	}
	d.meter.write(p, each*writeUnits(before, after))
	if !w.check {
		for index, units := range w.table.set(w.hash, w.sort, before, after) {
			d.meter.write(index, units)
		}
	}
	return after
}

func (w write) key() itemKey { return itemKey{w.table.Name, w.hash, w.sort} }

func (d *DynamoDB) conflict(w write) {
	d.meter.of(w.table.Name).Conflicts++
	d.rejected = w.hash
}

func (d *DynamoDB) writeTo(name *string, key item) write {
	t := d.tables[*name]
	hash, sort := t.keyOf(key)
	return write{table: t, hash: hash, sort: sort}
}

// alone performs a write outside a transaction.
func (d *DynamoDB) alone(w write) (after item, err error) {
	p := partition{w.table.Name, w.hash}
	if !d.meter.fits(p) || !d.indexesFit(w) {
		return nil, d.throttled(p)
	}
	if d.locks.meets(w.key(), d.now, d.now, d.turn) {
		d.conflict(w)
		return nil, &types.TransactionConflictException{Message: aws.String("A transaction holds the item.")}
	}
	before, ok := d.before(w)
	if !ok {
		d.meter.write(p, writeUnits(before, nil))
		rejected := &types.ConditionalCheckFailedException{Message: aws.String("The condition is false.")}
		if w.wantOld {
			rejected.Item = before
		}
		return nil, rejected
	}
	return d.make(w, before, 1), nil
}

// indexesFit reports whether the item's index partitions have capacity, because a table's write waits for its
// indexes.
func (d *DynamoDB) indexesFit(w write) bool {
	for _, index := range w.table.Indexes {
		for _, i := range []item{w.table.get(w.hash, w.sort), w.item} {
			if hash := textOf(i[index.PartitionKey]); hash != "" &&
				!d.meter.fits(partition{w.table.Name + "/" + index.Name, hash}) {
				return false
			}
		}
	}
	return true
}

func (w *write) when(condition *string, names map[string]string, values item,
	old types.ReturnValuesOnConditionCheckFailure,
) {
	w.condition, w.names, w.values = condition, names, values
	w.wantOld = old == types.ReturnValuesOnConditionCheckFailureAllOld
}

func (d *DynamoDB) putItem(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	w := d.writeTo(in.TableName, in.Item)
	w.item = in.Item
	w.when(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ReturnValuesOnConditionCheckFailure)
	_, err := d.alone(w)
	return &dynamodb.PutItemOutput{}, err
}

func (d *DynamoDB) updateItem(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	w := d.writeTo(in.TableName, in.Key)
	w.update = in.UpdateExpression
	w.when(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		in.ReturnValuesOnConditionCheckFailure)
	after, err := d.alone(w)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.UpdateItemOutput{}
	if in.ReturnValues != "" {
		out.Attributes = after
	}
	return out, nil
}

func (d *DynamoDB) transact(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	token := aws.ToString(in.ClientRequestToken)
	if d.written(token) {
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	writes := make([]write, len(in.TransactItems))
	befores := make([]item, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	rejected, met, busy := false, false, ""
	for i, part := range in.TransactItems {
		w := d.part(part)
		var ok bool
		befores[i], ok = d.before(w)
		writes[i], reasons[i] = w, types.CancellationReason{Code: aws.String("None")}
		switch {
		case !d.meter.fits(partition{w.table.Name, w.hash}) || !d.indexesFit(w):
			busy = w.table.Name
			reasons[i].Code = aws.String("ThrottlingError")
		case !ok:
			rejected = true
			reasons[i].Code = aws.String("ConditionalCheckFailed")
			if w.wantOld {
				reasons[i].Item = befores[i]
			}
		case d.locks.meets(w.key(), d.now, d.now.Add(TransactionTime), d.turn):
			met = true
			reasons[i].Code = aws.String("TransactionConflict")
			d.conflict(w)
		}
	}
	if busy != "" {
		d.meter.of(busy).Throttled++
		d.rejected = busy
	}
	if rejected || met || busy != "" {
		for i, w := range writes {
			d.meter.write(partition{w.table.Name, w.hash}, 2*writeUnits(befores[i], nil))
		}
		return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	for i, w := range writes {
		d.make(w, befores[i], 2)
		d.meter.transaction(partition{w.table.Name, w.hash}, w.sort)
		d.locks.hold(w.key(), d.now, d.turn)
	}
	d.remember(token)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (d *DynamoDB) part(part types.TransactWriteItem) (w write) {
	switch {
	case part.Put != nil:
		p := part.Put
		w = d.writeTo(p.TableName, p.Item)
		w.item = p.Item
		w.when(p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues,
			p.ReturnValuesOnConditionCheckFailure)
	case part.Update != nil:
		u := part.Update
		w = d.writeTo(u.TableName, u.Key)
		w.update = u.UpdateExpression
		w.when(u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues,
			u.ReturnValuesOnConditionCheckFailure)
	case part.Delete != nil:
		r := part.Delete
		w = d.writeTo(r.TableName, r.Key)
		w.when(r.ConditionExpression, r.ExpressionAttributeNames, r.ExpressionAttributeValues,
			r.ReturnValuesOnConditionCheckFailure)
	default:
		c := part.ConditionCheck
		w = d.writeTo(c.TableName, c.Key)
		w.check = true
		w.when(c.ConditionExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues,
			c.ReturnValuesOnConditionCheckFailure)
	}
	return w
}

func (d *DynamoDB) written(token string) bool {
	now := d.clock.Now()
	for len(d.recent) > 0 && now.Sub(d.tokens[d.recent[0]]) >= tokenAge {
		delete(d.tokens, d.recent[0])
		d.recent = d.recent[1:]
	}
	_, written := d.tokens[token]
	return token != "" && written
}

func (d *DynamoDB) remember(token string) {
	if token != "" {
		d.tokens[token] = d.clock.Now()
		d.recent = append(d.recent, token)
	}
}
