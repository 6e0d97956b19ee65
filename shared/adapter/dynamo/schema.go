// Package dynamo keeps records in DynamoDB. Every write is one conditional call or one transaction,
// so retried or late writes do no harm.
//
// Every method that calls DynamoDB returns fault.Unavailable if the records are busy or throttled.
// Comments name only other errors.
package dynamo

type Table struct {
	// Name is the table's name within a deployment, such as "jobs".
	Name string
	// These attributes have string values. SortKey may be empty.
	PartitionKey, SortKey string
	Indexes               []Index
	// TTL is the attribute with the Unix time, in seconds, after which DynamoDB deletes an item. It
	// may be empty.
	TTL string
	// A table has at most one stream, of items before each change or removal, or of items after each
	// change.
	StreamsOldImages bool
	StreamsNewImages bool
}

// Index describes a global secondary index. Its keys are strings.
type Index struct {
	Name                  string
	PartitionKey, SortKey string
	// Includes lists the attributes of the index in addition to the keys. Empty means all.
	Includes []string
}

// TableName returns the name of a table in a deployment, so that the command line needs no AWS
// call.
func TableName(stage, name string) string { return "cutroom-" + stage + "-" + name }

const ttlAttribute = "ttl"

func Tables() []Table {
	return []Table{
		// The request of a job has its own item, so that progress writes stay small.
		{
			Name: "jobs", PartitionKey: "id", SortKey: "part", TTL: ttlAttribute, StreamsNewImages: true,
			Indexes: []Index{
				{Name: jobsByAccount, PartitionKey: "account", SortKey: "id", Includes: []string{"status", "model"}},
			},
		},
		{
			Name: "files", PartitionKey: "account", SortKey: "id", TTL: ttlAttribute, StreamsOldImages: true,
			Indexes: []Index{{Name: filesByEnd, PartitionKey: "account", SortKey: "ends_at"}},
		},
		{
			Name: "credentials", PartitionKey: "id", TTL: ttlAttribute,
			Indexes: []Index{{Name: keysByAccount, PartitionKey: "account", SortKey: "id"}},
		},
		{Name: "sessions", PartitionKey: "id", TTL: ttlAttribute},
		// Its stream delivers budget warnings to their receivers.
		{Name: "usage", PartitionKey: "id", SortKey: "part", TTL: ttlAttribute, StreamsNewImages: true},
	}
}
