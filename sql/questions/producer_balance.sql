-- How evenly is each topic written, and which messages have no reader?
--
-- One row per topic of the newest published day of each cluster, the worst first: messages that fail or have no reader,
-- then the most uneven topics. max_over_even_share: the largest share divided by an even one over all brokers of the route; 1 is even.
-- failing_share: first attempts at brokers that only an order configuration still names. A null share is unknown.
SELECT
    cluster,
    ds,
    topic,
    any_value(publish_source) AS publish_source,
    count(*) AS broker_count,
    count(*) FILTER (share > 0) AS written_broker_count,
    round(max(share), 3) AS largest_share,
    round(max(share) * count(*), 2) AS max_over_even_share,
    round(sum(unread_share), 3) AS unread_share,
    CASE WHEN count(share) > 0 THEN round(coalesce(sum(share) FILTER (reason IS NOT NULL), 0), 3) END AS failing_share,
    any_value(publish_list_count) AS publish_list_count,
    list(broker_name || ': ' || reason ORDER BY broker_name) FILTER (reason IS NOT NULL) AS reasons
FROM latest.producer_spread
GROUP BY cluster, ds, topic
ORDER BY
    coalesce(failing_share, 0) + coalesce(sum(unread_share), 0) DESC,
    max_over_even_share DESC NULLS FIRST,
    cluster,
    topic
