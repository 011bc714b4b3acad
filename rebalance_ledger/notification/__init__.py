"""Notifications of new critical findings, of those that are gone, and of refused days.

What belongs here: what is new since the last notification, and how it is sent. What does not: queries (`sql/notification`), schedules
(`dags`), and alerts on metrics (`deploy/prometheus`).
"""
