"""Notifications of new and resolved critical findings, and of refused days.

Belongs here: the changes since the last notification, and sending them. Does not belong here: queries (`sql/notification`), schedules
(`dags`), and alerts on metrics (`deploy/prometheus`).
"""
