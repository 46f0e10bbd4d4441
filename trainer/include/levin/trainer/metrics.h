#pragma once
// Umbrella header of all metrics.

#include <levin/trainer/metrics/classification.h>
#include <levin/trainer/metrics/detection.h>
#include <levin/trainer/metrics/ranking.h>
#include <levin/trainer/metrics/regression.h>
#include <levin/trainer/metrics/text.h>
