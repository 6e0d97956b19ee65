package s3blob

import "strings"

const ConsoleBucket = "console"

// BucketName returns the name of the bucket for blobs, or for another kind of content. Bucket names
// are global, so they include the account and the region.
func BucketName(stage, kind, account, region string) string {
	parts := []string{"cutroom", stage}
	if kind != "" {
		parts = append(parts, kind)
	}
	return strings.Join(append(parts, account, region), "-")
}
