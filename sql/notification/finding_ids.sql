-- Findings of the day of any severity, whether or not another finding explains them
SELECT finding_id FROM finding WHERE cluster = $cluster AND ds = $ds AND finding_id IS NOT NULL ORDER BY finding_id
