package s3blob

import "strings"

// ConsoleBucket is the kind of the bucket that holds the console's page.
const ConsoleBucket = "console"

// BucketName returns the name of a bucket of a deploy: of the blobs, or of another
// kind. All accounts share the names of buckets, so the account and the region are
// part of it.
func BucketName(stage, kind, account, region string) string {
	parts := []string{"cutroom", stage}
	if kind != "" {
		parts = append(parts, kind)
	}
	return strings.Join(append(parts, account, region), "-")
}
