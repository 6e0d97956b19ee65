// Package dynamo stores records in DynamoDB. Every write is one conditional call or one
// transaction, so retried or late writes do no harm.
//
// Every method that calls DynamoDB returns fault.Unavailable if DynamoDB throttles or the records
// are busy. Method comments name only other errors.
package dynamo

type Table struct {
	// Name is the table's name within a deployment, such as "jobs".
	Name string
	// Both attributes are strings. SortKey may be empty.
	PartitionKey, SortKey string
	Indexes               []Index
	// TTL names the attribute with the Unix time, in seconds, after which DynamoDB deletes an item. It may be empty.
	TTL string
	// A table has at most one stream, which contains items either before each change or removal, or
	// after each change.
	StreamsOldImages bool
	StreamsNewImages bool
}

// Index describes a global secondary index. Its keys are strings.
type Index struct {
	Name                  string
	PartitionKey, SortKey string
	// Includes lists the index's attributes in addition to the keys. If it is empty, the index has all attributes.
	Includes []string
}

// TableName returns the name of a deployment's table. The name can be computed, so the command line
// needs no AWS call to find it.
func TableName(stage, name string) string { return "cutroom-" + stage + "-" + name }

const ttlAttribute = "ttl"

func Tables() []Table {
	return []Table{
		// A job's request has its own item, so that progress writes stay small.
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
		// The stream triggers the delivery of budget warnings.
		{Name: "usage", PartitionKey: "id", SortKey: "part", TTL: ttlAttribute, StreamsNewImages: true},
	}
}
