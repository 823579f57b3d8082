-- Version 7: further attempts of deliveries, and when each is due. Until then the delivery is in no outbox: is_pending is false.
ALTER TABLE delivery ADD COLUMN retry_at bigint;
CREATE INDEX delivery_retry ON delivery (retry_at, id) WHERE retry_at IS NOT NULL AND NOT is_pending;
