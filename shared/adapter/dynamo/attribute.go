package dynamo

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item holds an item's attributes, its key, or the values of an expression.
type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func moment(t time.Time) types.AttributeValue  { return number(t.UnixMilli()) }
func seconds(t time.Time) types.AttributeValue { return number(wholeSeconds(t)) }

// wholeSeconds rounds up, so that TTL never deletes an item early.
func wholeSeconds(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

func optionalSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return wholeSeconds(t)
}

func optionalMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func optionalTime(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// reader reads an item's attributes. err reports the first attribute that has an unexpected type.
type reader struct {
	item item
	err  error
}

func (r *reader) text(name string) string {
	switch value := r.item[name].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return value.Value
	}
	r.fail(name)
	return ""
}

func (r *reader) number(name string) int64 {
	switch value := r.item[name].(type) {
	case nil:
		return 0
	case *types.AttributeValueMemberN:
		if n, err := strconv.ParseInt(value.Value, 10, 64); err == nil {
			return n
		}
	}
	r.fail(name)
	return 0
}

func (r *reader) moment(name string) time.Time {
	if r.item[name] == nil {
		return time.Time{}
	}
	return time.UnixMilli(r.number(name)).UTC()
}

func (r *reader) fail(name string) {
	if r.err == nil {
		r.err = fmt.Errorf("dynamo: the attribute %s has the wrong type", name)
	}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func numberOf(value types.AttributeValue) int64 {
	n, _ := value.(*types.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	parsed, _ := strconv.ParseInt(n.Value, 10, 64)
	return parsed
}

func hashOf(id string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // never fails
	return hash.Sum32()
}
