package cost

import (
	"encoding/base64"
	"reflect"

	"cutroom/bench/capacity"
	"cutroom/shared/adapter/dynamo"
)

// record is an item of DynamoDB as it is on the wire: attributes by their names, each an
// object of its type and value. A nil record is no item.
type record map[string]any

// sizeOf returns the size of a record in bytes, as DynamoDB counts it (DynamoDB Developer
// Guide, "DynamoDB item sizes and formats").
func sizeOf(r record) int {
	size := 0
	for name, value := range r {
		size += len(name) + valueSize(value)
	}
	return size
}

func valueSize(value any) int {
	typed, _ := value.(map[string]any)
	for kind, v := range typed {
		switch v := v.(type) {
		case string:
			switch kind {
			case "N":
				return capacity.Number(v)
			case "B":
				return base64.StdEncoding.DecodedLen(len(v))
			}
			return len(v)
		case []any:
			return listSize(kind, v)
		case map[string]any: // a map
			return sizeOf(v) + 3 + len(v)
		}
	}
	return 1 // a boolean or null
}

// listSize returns the size of a list or a set.
func listSize(kind string, values []any) int {
	size := 0
	for _, v := range values {
		switch text, _ := v.(string); kind {
		case "L":
			size += valueSize(v) + 1
		case "NS":
			size += capacity.Number(text)
		case "BS":
			size += base64.StdEncoding.DecodedLen(len(text))
		default:
			size += len(text)
		}
	}
	if kind == "L" {
		size += 3
	}
	return size
}

// writes returns the write units of a write that turned before into after: by the larger
// of the two.
func writes(before, after record) float64 {
	return capacity.Writes(max(sizeOf(before), sizeOf(after)))
}

// indexWrites returns the write units of a write on the indexes of a table (DynamoDB
// Developer Guide, "Provisioned throughput considerations for Global Secondary Indexes").
func indexWrites(table dynamo.Table, before, after record) float64 {
	units := 0.0
	for _, index := range table.Indexes {
		old, now := projected(table, index, before), projected(table, index, after)
		switch {
		case old == nil && now == nil, reflect.DeepEqual(old, now):
		case old != nil && now != nil && sameKey(table, index, old, now):
			units += writes(old, now)
		default:
			if old != nil {
				units += capacity.Writes(sizeOf(old))
			}
			if now != nil {
				units += capacity.Writes(sizeOf(now))
			}
		}
	}
	return units
}

// projected returns what an index holds of a record; nil if the record is not in it.
func projected(table dynamo.Table, index dynamo.Index, r record) record {
	held := record{}
	for _, name := range keyNames(table, index) {
		value, ok := r[name]
		if !ok {
			return nil
		}
		held[name] = value
	}
	if len(index.Includes) == 0 {
		return r
	}
	for _, name := range index.Includes {
		if value, ok := r[name]; ok {
			held[name] = value
		}
	}
	return held
}

func sameKey(table dynamo.Table, index dynamo.Index, a, b record) bool {
	for _, name := range keyNames(table, index) {
		if !reflect.DeepEqual(a[name], b[name]) {
			return false
		}
	}
	return true
}

func keyNames(table dynamo.Table, index dynamo.Index) []string {
	var names []string
	for _, name := range []string{index.PartitionKey, index.SortKey, table.PartitionKey, table.SortKey} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
