package cost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"cutroom/bench/capacity"
	"cutroom/shared/app/awscost"
	"cutroom/shared/testkit/awstest"
)

// change is a record that a call writes, as it was before the call.
type change struct {
	table  string
	key    record
	before record
}

// write is the part of a call that writes a record, by its key or by the whole record.
type write struct {
	TableName string
	Key, Item record
}

// changesOf returns the records that a call is about to write.
func (t *tap) changesOf(call string, body []byte) ([]change, error) {
	var parts []write
	switch call {
	case "DynamoDB.PutItem", "DynamoDB.UpdateItem", "DynamoDB.DeleteItem":
		parts = make([]write, 1)
		if err := json.Unmarshal(body, &parts[0]); err != nil {
			return nil, err
		}
	case "DynamoDB.TransactWriteItems":
		var transaction struct{ TransactItems []map[string]write }
		if err := json.Unmarshal(body, &transaction); err != nil {
			return nil, err
		}
		for _, part := range transaction.TransactItems {
			for _, w := range part {
				parts = append(parts, w)
			}
		}
	}
	var changes []change
	for _, part := range parts {
		table, ok := t.tables[part.TableName]
		if !ok {
			return nil, fmt.Errorf("the table %q is not in the schema", part.TableName)
		}
		key := part.Key
		if key == nil {
			key = record{table.PartitionKey: part.Item[table.PartitionKey]}
			if table.SortKey != "" {
				key[table.SortKey] = part.Item[table.SortKey]
			}
		}
		before, err := t.read(part.TableName, key)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{part.TableName, key, before})
	}
	return changes, nil
}

// read reads a record of the local AWS; nil if there is none.
func (t *tap) read(table string, key record) (record, error) {
	body, err := json.Marshal(map[string]any{"TableName": table, "Key": key, "ConsistentRead": true})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, t.target, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.GetItem")
	// The local AWS takes account and region from this, and checks no signature.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+awstest.Region+
		"/dynamodb/aws4_request, SignedHeaders=host, Signature=none")
	response, err := t.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Item record }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read a record: status %d", response.StatusCode)
	}
	return answer.Item, nil
}

// unitsOf returns the capacity units of a call. A write that its condition refuses uses
// as much as one that succeeds.
func (t *tap) unitsOf(operation string, body, answer []byte, changes []change) (awscost.Quantities, error) {
	switch operation {
	case "GetItem", "Query", "Scan":
		return readUnits(body, answer)
	case "BatchGetItem":
		return batchUnits(body, answer)
	}
	units := 0.0
	for _, c := range changes {
		if isHeartbeat(c.key) {
			return nil, nil
		}
		after, err := t.read(c.table, c.key)
		if err != nil {
			return nil, err
		}
		record := writes(c.before, after)
		if operation == "TransactWriteItems" {
			record *= 2
		}
		units += record + indexWrites(t.tables[c.table], c.before, after)
	}
	return awscost.Quantities{awscost.WriteUnit: units}, nil
}

func readUnits(body, answer []byte) (awscost.Quantities, error) {
	var asked struct{ ConsistentRead bool }
	var got struct {
		Item  record
		Items []record
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, err
	}
	size := sizeOf(got.Item)
	for _, r := range got.Items {
		size += sizeOf(r)
	}
	return awscost.Quantities{awscost.ReadUnit: capacity.Reads(size, asked.ConsistentRead)}, nil
}

// batchUnits returns the units of a batch's reads, one by one.
func batchUnits(body, answer []byte) (awscost.Quantities, error) {
	var asked struct {
		RequestItems map[string]struct {
			Keys           []record
			ConsistentRead bool
		}
	}
	var got struct{ Responses map[string][]record }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, err
	}
	units := 0.0
	for table, part := range asked.RequestItems {
		found := got.Responses[table]
		for _, r := range found {
			units += capacity.Reads(sizeOf(r), part.ConsistentRead)
		}
		units += float64(len(part.Keys)-len(found)) * capacity.Reads(0, part.ConsistentRead)
	}
	return awscost.Quantities{awscost.ReadUnit: units}, nil
}

// isHeartbeat reports whether a key is that of the record by which workers report that
// they run (dynamo.Workers).
func isHeartbeat(key record) bool {
	value, _ := key["part"].(map[string]any)
	return value["S"] == "workers"
}
