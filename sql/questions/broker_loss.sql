-- What would the loss of a broker do to the producers, topic by topic?
--
-- One row per broker and topic of the newest published day of each cluster that is written there, the hardest hit first: topics
-- that stop, then those whose other brokers get most more. Restrict it to one broker: --cluster, --broker. retried_share: messages
-- that need a second attempt while the broker is down and still in the route. load_ratio: what each other broker then gets, divided
-- by what it got.
SELECT
    cluster,
    ds,
    broker_name,
    topic,
    is_only_writable_broker AS would_stop,
    round(share, 3) AS share,
    round(retried_share_while_lost, 3) AS retried_share,
    round(load_ratio_after_loss, 2) AS load_ratio,
    round(largest_share_after_loss, 3) AS largest_share_of_another,
    -- A route forgets the broker by itself; an order configuration goes on sending to it until somebody changes it.
    publish_source
FROM latest.producer_spread
WHERE share > 0
ORDER BY cluster, broker_name, would_stop DESC, load_ratio_after_loss DESC, topic
