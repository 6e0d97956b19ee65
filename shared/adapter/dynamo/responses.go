package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/response"
)

// Responses uses the usage table, because the gateway may already write to it. An item per account counts the bytes
// of all responses ever kept. Each response stores the value that the count had after adding its bytes. The
// difference between the current count and this value shows whether the response has been dropped.
type Responses struct {
	client *dynamodb.Client
	table  string
}

var _ response.Store = (*Responses)(nil)

func NewResponses(client *dynamodb.Client, table string) *Responses { return &Responses{client, table} }

// responseKey returns the key of a response, or of the account's count if the id is empty.
func responseKey(account, id string) item {
	return item{"id": text(fmt.Sprintf("response/%d/%s/%s", len(account), account, id)), "part": text("response")}
}

func (r *Responses) Keep(ctx context.Context, account, id string, content []byte, now time.Time) error {
	counted, _, err := tryUpdate(ctx, r.client, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: responseKey(account, ""), ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression:         aws.String("ADD #ends :size SET #ttl = :ttl"),
		ExpressionAttributeNames: named("ends", "ttl"),
		ExpressionAttributeValues: item{
			":size": number(int64(len(content) + response.BytesEach)), ":ttl": seconds(now.Add(2 * response.Age)),
		},
	})
	if err != nil {
		return storeError("count a response", err)
	}
	_, _, err = tryUpdate(ctx, r.client, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: responseKey(account, id),
		UpdateExpression:         aws.String("SET #content = :content, #ends = :ends, #kept_at = :now, #ttl = :ttl"),
		ExpressionAttributeNames: named("content", "ends", "kept_at", "ttl"),
		ExpressionAttributeValues: item{
			":content": &types.AttributeValueMemberB{Value: content}, ":ends": counted["ends"],
			":now": moment(now), ":ttl": seconds(now.Add(response.Age)),
		},
	})
	return storeError("keep a response", err)
}

func (r *Responses) Find(ctx context.Context, account, id string, now time.Time) ([]byte, error) {
	found, err := readItem(ctx, r.client, r.table, responseKey(account, id))
	content, _ := found["content"].(*types.AttributeValueMemberB)
	if err != nil || content == nil || numberOf(found["kept_at"]) <= now.Add(-response.Age).UnixMilli() {
		return nil, storeError("find a response", err)
	}
	count, err := readItem(ctx, r.client, r.table, responseKey(account, ""))
	if err != nil || numberOf(count["ends"])-numberOf(found["ends"]) >= response.AccountBytes {
		return nil, storeError("find a response", err)
	}
	return content.Value, nil
}

// Delete removes the content but leaves the item to its TTL, because functions have no permission to delete items of
// this table.
func (r *Responses) Delete(ctx context.Context, account, id string) error {
	_, _, err := tryUpdate(ctx, r.client, &dynamodb.UpdateItemInput{
		TableName: &r.table, Key: responseKey(account, id),
		ConditionExpression:      aws.String("attribute_exists(#content)"),
		UpdateExpression:         aws.String("REMOVE #content"),
		ExpressionAttributeNames: named("content"),
	})
	return storeError("delete a response", err)
}
