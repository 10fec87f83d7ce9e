#pragma once
#include <QtTest>

/// QVERIFY of a Result or Status, which shows its error.
#define QVERIFY_RESULT(result) QVERIFY2(result, (result) ? "" : (result).error().line().c_str())
