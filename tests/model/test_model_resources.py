"""Resource vectors: the worked examples of spec 01 §1.11, and what they leave open."""

from __future__ import annotations

import pytest

from vcscheduler.model.resources import EPSILON, INFINITY, ZERO, Resources, is_scalar_name, le, ratio

GPU = "nvidia.com/gpu"


def vec(cpu: float = 0, memory: float = 0, **scalars: float) -> Resources:
    return Resources(cpu, memory, scalars or None)


def test_r1_every_kind_of_name() -> None:
    r = Resources.from_list(
        {
            "cpu": "1500m",
            "memory": "1.5Gi",
            "ephemeral-storage": "1Gi",
            GPU: 2,
            "hugepages-2Mi": "4Mi",
            "pods": 110,
            "count/pods": 5,
            "requests.cpu": 3,
            "storage": "10Gi",
        }
    )
    assert (r.cpu, r.memory, r.max_tasks) == (1500, 1610612736, 110)
    assert r.scalars == {"ephemeral-storage": 1073741824000, GPU: 2000, "hugepages-2Mi": 4194304000, "pods": 110}


def test_r2_quantities_are_rounded_up() -> None:
    r = Resources.from_list({"cpu": "0.0001", "memory": "1.2", "x.io/y": "1500u"})
    assert (r.cpu, r.memory, r.scalars) == (1, 2, {"x.io/y": 2})


def test_r3_scalars_that_only_the_right_has() -> None:
    left, right = vec(1000, 1e9), vec(2000, 2e9, gpu=2000)
    assert (left.less(right, ZERO), left.less(right, INFINITY)) == (True, False)
    assert (left.less_equal(right, ZERO), left.less_equal(right, INFINITY)) == (True, False)
    assert left.exceeding(right, ZERO) == left.exceeding(right, INFINITY) == []
    for default in (ZERO, INFINITY):
        assert left.less_partly(right, default)
        assert left.less_equal_partly(right, default)


def test_r4_scalars_that_only_the_left_has() -> None:
    left, right = vec(1000, 1e9, gpu=1000), vec(2000, 2e9)
    assert (left.less(right, ZERO), left.less(right, INFINITY)) == (False, True)
    assert left.exceeding(right, ZERO) == ["gpu"]
    assert left.exceeding(right, INFINITY) == []


def test_r5_the_tolerance_is_not_everywhere() -> None:
    left, right = vec(2000.09, 5), vec(2000, 5)
    assert left.less_equal(right)
    assert left.equal(right)
    assert left.exceeding_where(right, vec(1)) == ["cpu"]


def test_r8_a_vector_without_scalars_ignores_those_of_the_other_when_subtracting() -> None:
    left = vec(1000).sub(vec(200, g=1000))
    assert (left.cpu, left.scalars) == (800, None)


def test_r9_greater_in_what_the_other_says_something_about() -> None:
    left, asked = vec(gpu=2), vec(gpu=1)
    assert left.above_where(vec(), asked) == ["gpu"]
    assert left.above_where_set(vec(), asked) == []
    assert left.above_where(vec(gpu=0), asked) == left.above_where_set(vec(gpu=0), asked) == ["gpu"]
    assert left.above_where(None, asked) == ["gpu"]
    assert left.above_where(vec(), None) == []


def test_r10_dimensions_in_which_both_have_nothing_are_left_out() -> None:
    left, right = vec(0, 1024), vec(2000, 0, gpu=4)
    assert left.within_where_set(right, vec(1000, 512, gpu=2)) == ["cpu", "gpu"]


def test_r11_minimum_by_dimension() -> None:
    zero = vec(4000, 2000, a=1, b=2).min_dimension(vec(3000, 2000, a=0), ZERO)
    assert (zero.cpu, zero.memory, zero.scalars) == (3000, 2000, {"a": 0, "b": 0})
    infinite = vec(4000, 2000, a=1, b=2).min_dimension(vec(3000, 2000, a=0), INFINITY)
    assert infinite.scalars == {"a": 0, "b": 2}


def test_exceeded_part_is_never_negative_and_names_only_what_is_more() -> None:
    more = vec(1000, 2000, g=1000, h=5).above(vec(2000, 1000, h=5))
    assert (more.cpu, more.memory, more.scalars) == (0, 1000, {"g": 1000})
    same = vec(1)
    assert same.above(None) is same


@pytest.mark.parametrize(
    ("name", "scalar"),
    [
        (GPU, True),
        ("limits.nvidia.com/gpu", True),
        ("requests.nvidia.com/gpu", False),
        ("kubernetes.io/anything", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("storage", False),
        ("example.com/", False),
        ("Example.com/card", False),
    ],
)
def test_names_of_scalars(name: str, scalar: bool) -> None:
    assert is_scalar_name(name) is scalar


def test_emptiness_does_not_look_at_pods() -> None:
    assert vec(0.09, 0.09, pods=5).is_empty()
    assert not vec(x=EPSILON).is_empty()
    assert vec(1, 0, pods=5, b=1, a=1).names() == ["cpu", "a", "b", "pods"]
    assert vec(1, 1, pods=1).common(vec(1, 0, pods=1), ignore_pods=True) == ["cpu"]


def test_pods_are_compared() -> None:
    assert not vec(pods=2).less_equal(vec(pods=1))
    assert vec(pods=2).exceeding_where(vec(pods=1), vec(pods=1)) == []


def test_set_max_takes_over_scalars_as_they_are_when_it_has_none() -> None:
    assert vec(1).set_max(vec(0, 5, g=-1)).scalars == {"g": -1}
    assert vec(1, g=3).set_max(vec(2, g=1, h=0)).scalars == {"g": 3, "h": 0}


def test_minimum_and_maximum_of_two() -> None:
    assert vec(1, 2, a=1).minimum(vec(2, 1)).scalars is None
    assert vec(1, 2, a=1, b=1).minimum(vec(2, 1, a=3, c=9)).scalars == {"a": 1, "b": 0}
    assert vec(a=-1, b=1).maximum(vec(b=2, c=3)).scalars == {"b": 2, "c": 3}


def test_many_additions_at_once() -> None:
    request, once, often = vec(3, 7, g=2), vec(1), vec(1)
    for _ in range(5):
        often.add(request)
    assert once.add_times(request, 5).same(often)
    assert once.add_times(request, -5).same(vec(1, 0, g=0))


def test_small_numbers() -> None:
    assert le(1.05, 1.0)
    assert not le(1.1, 1.0)
    assert (ratio(0, 0), ratio(1, 0), ratio(1, 4)) == (0, 1, 0.25)


def test_text() -> None:
    assert str(vec(1000, 5, z=1, a=2)) == "cpu 1000.00, memory 5.00, a 2.00, z 1.00"
    assert str(Resources.infinite()) == "cpu maxFloat, memory maxFloat"
