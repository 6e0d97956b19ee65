package fakeaws

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
)

type table struct {
	dynamo.Table
	partitions map[string]*items
	indexes    map[string]map[string]*items
}

// items holds a partition's items, ordered by sort key. In an index, the table's key is appended to the sort key.
type items struct {
	keys []string
	of   map[string]item
}

func (s *items) get(key string) item {
	if s == nil {
		return nil
	}
	return s.of[key]
}

func (s *items) put(key string, i item) {
	if s.of[key] == nil {
		at, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, at, key)
	}
	s.of[key] = i
}

func (s *items) remove(key string) {
	if s.of[key] == nil {
		return
	}
	at, _ := slices.BinarySearch(s.keys, key)
	s.keys = slices.Delete(s.keys, at, at+1)
	delete(s.of, key)
}

func newTable(t dynamo.Table) *table {
	made := &table{Table: t, partitions: map[string]*items{}, indexes: map[string]map[string]*items{}}
	for _, index := range t.Indexes {
		made.indexes[index.Name] = map[string]*items{}
	}
	return made
}

func (t *table) keyOf(i item) (hash, sort string) {
	if t.SortKey != "" {
		sort = textOf(i[t.SortKey])
	}
	return textOf(i[t.PartitionKey]), sort
}

func (t *table) get(hash, sort string) item { return t.partitions[hash].get(sort) }

// set replaces an item, or removes it if the new item is nil. It returns the units used in each index partition.
func (t *table) set(hash, sort string, before, after item) map[partition]float64 {
	put(t.partitions, hash, sort, before, after)
	var units map[partition]float64
	for _, index := range t.Indexes {
		was, is := t.projected(index, before), t.projected(index, after)
		if was == nil && is == nil {
			continue
		}
		if units == nil {
			units = map[partition]float64{}
		}
		t.move(index, hash, sort, was, is, units)
	}
	return units
}

// move applies an item's change to an index (DynamoDB Developer Guide, "Provisioned throughput considerations for
// Global Secondary Indexes").
func (t *table) move(index dynamo.Index, hash, sort string, was, is item, units map[partition]float64) {
	name := t.Name + "/" + index.Name
	rest := "\x00" + hash + "\x00" + sort
	oldHash, oldSort := textOf(was[index.PartitionKey]), textOf(was[index.SortKey])+rest
	newHash, newSort := textOf(is[index.PartitionKey]), textOf(is[index.SortKey])+rest
	if was != nil && is != nil && oldHash == newHash && oldSort == newSort {
		put(t.indexes[index.Name], newHash, newSort, was, is)
		if !same(was, is) {
			units[partition{name, newHash}] += writeUnits(was, is)
		}
		return
	}
	if was != nil {
		put(t.indexes[index.Name], oldHash, oldSort, was, nil)
		units[partition{name, oldHash}] += writeUnits(was, nil)
	}
	if is != nil {
		put(t.indexes[index.Name], newHash, newSort, nil, is)
		units[partition{name, newHash}] += writeUnits(nil, is)
	}
}

func put(partitions map[string]*items, hash, sort string, before, after item) {
	p := partitions[hash]
	if after == nil {
		if p != nil && before != nil {
			p.remove(sort)
			if len(p.keys) == 0 {
				delete(partitions, hash)
			}
		}
		return
	}
	if p == nil {
		p = &items{of: map[string]item{}}
		partitions[hash] = p
	}
	p.put(sort, after)
}

// projected returns the index's projection of an item, or nil if the index does not contain the item.
func (t *table) projected(index dynamo.Index, i item) item {
	if i == nil {
		return nil
	}
	for _, name := range []string{index.PartitionKey, index.SortKey} {
		if i[name] == nil {
			return nil
		}
	}
	if len(index.Includes) == 0 {
		return i
	}
	held := item{}
	for _, name := range append([]string{index.PartitionKey, index.SortKey, t.PartitionKey, t.SortKey}, index.Includes...) {
		if value := i[name]; value != nil {
			held[name] = value
		}
	}
	return held
}

func same(a, b item) bool {
	return maps.EqualFunc(a, b, func(x, y types.AttributeValue) bool { return x == y || reflect.DeepEqual(x, y) })
}

// find returns a partition's items that match a key condition, in order, starting after a key, up to the limit. If
// more items follow, last is the key of the last returned item.
func (s *items) find(matches condition, sc scope, after string, backward bool, limit int) (found []item, last string) {
	if s == nil {
		return nil, ""
	}
	if limit <= 0 {
		limit = math.MaxInt
	}
	for i := range s.keys {
		key := s.keys[i]
		if backward {
			key = s.keys[len(s.keys)-1-i]
		}
		if after != "" && (key == after || (key < after) != backward) {
			continue
		}
		sc.item = s.of[key]
		if !matches(sc) {
			continue
		}
		if len(found) == limit {
			return found, last
		}
		found, last = append(found, sc.item), key
	}
	return found, ""
}
