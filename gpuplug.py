import sys
def pytest_runtest_logreport(report):
    if report.failed:
        sys.stderr.write("FAILED %s %s\n%s\n" % (report.nodeid, report.when, report.longreprtext[-3000:])); sys.stderr.flush()
