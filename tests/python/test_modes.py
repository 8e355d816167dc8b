"""The ways people train: create_graph, accumulation, scaling, autocast, checkpoints, hooks, several losses and optimizers."""
import gc
import warnings

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

import sgdph
from conftest import batch, bits, cannot, equal, loss_of, net, train


def steps(model, optimizer, backward, count=8):
    for step in range(count):
        optimizer.zero_grad()
        backward(loss_of(model, step))
        optimizer.step()
    return bits(model)


@pytest.fixture
def reference():
    model = net()
    return steps(model, (optimizer := sgdph.SGDPH(model)), optimizer.backward)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("kind", ["SGDPH", "AdaHessian"])
def test_a_plain_backward_with_create_graph_does_the_same(kind, fast):
    if fast:
        sgdph.install_fast_operators()
    model, other = net(), net()
    optimizer, plain = getattr(sgdph, kind)(model), getattr(sgdph, kind)(other)
    expected = steps(model, optimizer, optimizer.backward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of a cycle that step() breaks
        found = steps(other, plain, lambda loss: loss.backward(create_graph=True))
    assert equal(expected, found) if not fast else all(torch.allclose(a, b, atol=1e-12) for a, b in zip(expected, found))
    assert plain.last_step.products >= 1
    assert all(p.grad.grad_fn is None for p in other.parameters())


def test_create_graph_leaves_no_memory_behind():
    model = net()
    optimizer = sgdph.SGDPH(model)
    gc.collect()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step in range(40):
                if step == 10:
                    before = sum(isinstance(o, torch.Tensor) for o in gc.get_objects())
                optimizer.zero_grad()
                loss_of(model, step).backward(create_graph=True)
                optimizer.step()
        assert sum(isinstance(o, torch.Tensor) for o in gc.get_objects()) <= before + 2
    finally:
        gc.enable()


def test_curvature_from_update_curvature_and_gradients_from_a_plain_backward(reference):
    model = net()
    optimizer = sgdph.SGDPH(model)

    def backward(loss):
        optimizer.update_curvature(loss)
        loss.backward()

    assert equal(steps(model, optimizer, backward), reference)
    optimizer.backward(loss_of(model))
    with pytest.raises(RuntimeError, match="SGDPH.update_curvature: optimizer.backward has measured .* measure=False"):
        optimizer.update_curvature(loss_of(model))


def test_micro_batches_add_up_to_the_whole_batch():
    whole, parts = net("group"), net("group")
    one, two = sgdph.SGDPH(whole), sgdph.SGDPH(parts)
    for step in range(6):
        x, y = batch(step)
        one.zero_grad()
        one.backward(nn.functional.cross_entropy(whole(x), y))
        one.step()
        two.zero_grad()
        for i in range(4):
            part = slice(2 * i, 2 * i + 2)
            two.backward(nn.functional.cross_entropy(parts(x[part]), y[part]) / 4)
        two.step()
    assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in zip(bits(whole), bits(parts)))


def test_one_micro_batch_stands_for_all_where_they_are_alike():
    whole, parts = net("group"), net("group")
    one, two = sgdph.SGDPH(whole), sgdph.SGDPH(parts)
    for step in range(6):
        x, y = batch(step, size=2)
        one.zero_grad()
        one.backward(nn.functional.cross_entropy(whole(x), y))
        one.step()
        two.zero_grad()
        for i in range(4):
            two.backward(nn.functional.cross_entropy(parts(x), y) / 4, measure=i == 2, represents=4)
        two.step()
        assert two.last_step.products == one.last_step.products  # not four times as many
    assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in zip(bits(whole), bits(parts)))


@pytest.mark.parametrize("how", ["number", "tensor", "scaler"])
def test_a_grad_scaler_changes_nothing_but_the_way(reference, how):
    model = net()
    optimizer = sgdph.SGDPH(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
    for step in range(8):
        optimizer.zero_grad()
        loss = scaler.scale(loss_of(model, step))
        scale = {"number": scaler.get_scale(), "tensor": torch.tensor(scaler.get_scale()), "scaler": scaler}[how]
        optimizer.backward(loss, scale=scale)
        scaler.step(optimizer)
        scaler.update()
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(bits(model), reference))


def test_a_step_that_the_scaler_skips_leaves_no_measurement_behind():
    model, straight = net(), net()
    optimizer, other = sgdph.SGDPH(model), sgdph.SGDPH(straight)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(6):
        optimizer.zero_grad()
        optimizer.backward(scaler.scale(loss_of(model, step)), scale=scaler)
        if step == 2:
            next(model.parameters()).grad[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
    for step in (0, 1, 3, 4, 5):
        other.zero_grad()
        other.backward(loss_of(straight, step))
        other.step()
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(bits(model), bits(straight)))


@pytest.mark.parametrize("fast", [False, True])
def test_bfloat16_autocast_measures_about_the_same_curvature(fast):
    if fast:
        sgdph.install_fast_operators()
    found = {}
    for enabled in (False, True):
        model = net(dtype=torch.float32)
        optimizer = sgdph.SGDPH(model, refresh="all")
        x, y = batch(dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.backward(loss)
        optimizer.step()
        found[enabled] = {b.name: b.estimate for b in optimizer.last_step.blocks_refreshed}
    assert set(found[True]) - {"3.bias"} == set(found[False]) - {"3.bias"}
    for name in set(found[True]) - {"3.bias"}:  # whose row sum is zero
        assert (found[True][name] - found[False][name]).norm() < 0.2 * found[False][name].norm(), name


def test_under_autocast_the_shift_invariant_bias_is_found_as_well():
    model = net(dtype=torch.float32)
    optimizer = sgdph.SGDPH(model, lr=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(30):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, step, dtype=torch.float32)
            optimizer.backward(loss)
            optimizer.step()
    reasons = {e.name: e.reason for e in optimizer.partition()}
    assert "shift-invariant" in reasons["3.bias"] or "no curvature above rounding" in reasons["3.bias"]


def test_checkpoints_that_are_not_reentrant_change_nothing(reference):
    model = net()
    optimizer = sgdph.SGDPH(model)
    momenta = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert momenta

    def forward(x):
        x = checkpoint(model[:3], x, use_reentrant=False)
        return model[6:](checkpoint(model[3:6], x, use_reentrant=False))

    for step in range(8):
        x, y = batch(step)
        optimizer.zero_grad()
        optimizer.backward(nn.functional.cross_entropy(forward(x), y))
        optimizer.step()
    assert equal(bits(model), reference)


def test_a_reentrant_checkpoint_is_an_error_that_says_what_to_use():
    model = net()
    optimizer = sgdph.SGDPH(model)
    x, y = batch()

    def loss():
        hidden = checkpoint(model[3:6], model[:3](x), use_reentrant=True)
        return nn.functional.cross_entropy(model[6:](hidden), y)

    for call in (optimizer.backward, optimizer.update_curvature):
        with pytest.raises(RuntimeError, match=r"reentrant checkpoint .* use_reentrant=False"):
            call(loss())
    assert all(p.grad is None for p in model.parameters())
    optimizer.backward(loss(), measure=False)  # gradients alone are right
    assert all(p.grad is not None for p in model.parameters())


def test_hooks_see_plain_gradients_and_may_change_them():
    model = net()
    optimizer = sgdph.SGDPH(model)
    seen = []
    for name, parameter in model.named_parameters():
        parameter.register_hook(lambda g, name=name: seen.append(("tensor", name)))
        parameter.register_post_accumulate_grad_hook(
            lambda p, name=name: seen.append(("after", name, p.grad.grad_fn is None, p.grad.requires_grad))
        )
    model[8].bias.register_hook(lambda g: g * 0)
    model[3].register_full_backward_hook(lambda m, i, o: seen.append(("module",)))
    optimizer.backward(loss_of(model))
    assert {s[1] for s in seen if s[0] == "tensor"} == {n for n, _ in model.named_parameters()}
    assert {s[2:] for s in seen if s[0] == "after"} == {(True, False)} and ("module",) in seen
    assert not model[8].bias.grad.any()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
    assert optimizer.last_step.applied and optimizer.last_step.products


def test_an_error_in_a_hook_reaches_the_user_and_the_next_step_works():
    model = net()
    optimizer = sgdph.SGDPH(model)
    handle = model[0].weight.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        optimizer.backward(loss_of(model))
    handle.remove()
    train(model, optimizer, 2)


def test_two_losses_are_their_sum():
    together, apart = net(), net()
    one, two = sgdph.SGDPH(together), sgdph.SGDPH(apart)
    for step in range(6):
        one.zero_grad()
        one.backward(loss_of(together, step) + 0.5 * loss_of(together, step + 50))
        one.step()
        two.zero_grad()
        two.backward(loss_of(apart, step))
        two.backward(0.5 * loss_of(apart, step + 50))
        two.step()
    assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in zip(bits(together), bits(apart)))


def test_a_graph_that_is_retained_serves_another_pass():
    model = net()
    optimizer = sgdph.SGDPH(model)
    loss = loss_of(model)
    optimizer.backward(loss, retain_graph=True)
    first = [p.grad.clone() for p in model.parameters()]
    optimizer.zero_grad()
    optimizer.backward(loss)
    assert all(torch.equal(a, p.grad) for a, p in zip(first, model.parameters()))
    with pytest.raises(RuntimeError):
        optimizer.backward(loss)


def test_inputs_limit_gradients_and_curvature():
    model = net()
    optimizer = sgdph.SGDPH(model, refresh="all")
    optimizer.backward(loss_of(model), inputs=[model[1].weight, model[8].weight])
    assert {n for n, p in model.named_parameters() if p.grad is not None} == {"1.weight", "8.weight"}
    optimizer.step()
    assert [b.name for b in optimizer.last_step.blocks_refreshed] == ["1.weight"]
    with pytest.raises(ValueError, match="inputs must not be empty"):
        optimizer.backward(loss_of(model), inputs=[])


def test_two_optimizers_on_two_parts_of_a_model():
    model, straight = net(), net()
    trunk, head = sgdph.SGDPH(model[:6]), torch.optim.SGD(model[8].parameters(), lr=0.1)
    reference = sgdph.SGDPH(straight[:6])
    plain = torch.optim.SGD(straight[8].parameters(), lr=0.1)
    for step in range(6):
        for optimizer in (trunk, head, reference, plain):
            optimizer.zero_grad()
        trunk.backward(loss_of(model, step))  # gradients of every leaf, also the other optimizer's
        trunk.step()
        head.step()
        loss = loss_of(straight, step)
        reference.update_curvature(loss)
        loss.backward()
        reference.step()
        plain.step()
    assert equal(bits(model), bits(straight))


def test_two_optimizers_of_ours_measure_one_after_the_other():
    model = net()
    first, second = sgdph.SGDPH(model[:3]), sgdph.SGDPH(model[3:])
    for step in range(8):
        first.zero_grad()
        second.zero_grad()
        loss = loss_of(model, step)
        first.update_curvature(loss)
        second.update_curvature(loss)
        loss.backward()
        first.step()
        second.step()
    assert first.last_step.products and second.last_step.products


def test_gradients_and_channels_last_and_averaging():
    model = net(dtype=torch.float32).to(memory_format=torch.channels_last)
    optimizer = sgdph.SGDPH(model)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for step in range(4):
        x, y = batch(step, dtype=torch.float32)
        optimizer.zero_grad()
        optimizer.backward(nn.functional.cross_entropy(model(x.to(memory_format=torch.channels_last)), y))
        optimizer.step()
        averaged.update_parameters(model)
    torch.optim.swa_utils.update_bn([batch(9, dtype=torch.float32)[0]], averaged)
    assert averaged.n_averaged == 4


def test_inference_mode_is_refused_in_one_sentence():
    model = net()
    optimizer = sgdph.SGDPH(model)
    loss = loss_of(model)
    with torch.inference_mode(), pytest.raises(RuntimeError, match="InferenceMode"):
        optimizer.backward(loss)


def test_a_long_run_without_measurements_is_noticed_once():
    model = net()
    optimizer = sgdph.SGDPH(model)
    with pytest.warns(UserWarning, match=r"20 steps without a measurement .* optimizer.backward\(loss\)") as caught:
        steps(model, optimizer, lambda loss: loss.backward(), count=30)
    assert len(caught) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("inplace", [False, True])
def test_gradients_from_a_compiled_module_and_curvature_from_the_uncompiled_one(backend, inplace):
    torch._dynamo.reset()
    model, straight = net(), net()
    optimizer, reference = sgdph.SGDPH(model), sgdph.SGDPH(straight)
    if inplace:
        model.compile(backend=backend)
    compiled = model if inplace else torch.compile(model, backend=backend)
    try:
        compiled(batch()[0])
    except Exception as error:  # no compiler, or one that cannot
        if backend != "inductor":
            raise
        cannot(f"inductor cannot compile here: {str(error)[:300]}")
    compiled.load_state_dict(straight.state_dict()) if inplace else model.load_state_dict(straight.state_dict())
    for step in range(6):
        x, y = batch(step)
        optimizer.zero_grad()
        loss = sgdph.backward_compiled(optimizer, compiled, lambda m: nn.functional.cross_entropy(m(x), y))
        optimizer.step()
        reference.zero_grad()
        reference.backward(loss_of(straight, step))
        reference.step()
    assert loss.item() > 0 and optimizer.last_step.products >= 1
    assert all(torch.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(bits(model), bits(straight)))
    for a, b in zip(model.buffers(), straight.buffers()):  # as of one pass a step
        assert torch.allclose(a, b, atol=1e-10)


@pytest.mark.parametrize("way", ["parts", "held"])
def test_compiled_parts_and_what_holds_a_compiled_module_are_run_uncompiled(way):
    torch._dynamo.reset()
    model, straight = net(), net()
    optimizer, reference = sgdph.SGDPH(model), sgdph.SGDPH(straight)
    if way == "parts":
        compiled = nn.Sequential(torch.compile(model[:3], backend="aot_eager"), model[3:])
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        compiled = nn.parallel.DistributedDataParallel(torch.compile(model, backend="aot_eager"))
    try:
        for step in range(4):
            x, y = batch(step)
            optimizer.zero_grad()
            sgdph.backward_compiled(optimizer, compiled, lambda m: nn.functional.cross_entropy(m(x), y))
            optimizer.step()
    finally:
        if way == "held":
            dist.destroy_process_group()
    steps(straight, reference, reference.backward, count=4)
    assert optimizer.last_step.products >= 1
    assert all(torch.allclose(a, b, rtol=0, atol=1e-10) for a, b in zip(bits(model), bits(straight)))


def test_a_compiled_module_on_the_way_is_an_error_that_says_what_to_do():
    torch._dynamo.reset()
    model = net()
    optimizer = sgdph.SGDPH(model)
    compiled = torch.compile(model, backend="aot_eager")
    with pytest.raises(RuntimeError, match="a compiled module is on the way.*backward_compiled"):
        optimizer.backward(loss_of(compiled))
    with pytest.raises(ValueError, match="the module is not compiled"):
        sgdph.backward_compiled(optimizer, net(), loss_of)
    part = sgdph.backward_compiled(optimizer, compiled, loss_of, curvature_of=lambda m: loss_of(m, size=4))
    assert part.item() > 0
    optimizer.step()
    lion = sgdph.Lion(model)
    sgdph.backward_compiled(lion, compiled, loss_of)
    lion.step()
