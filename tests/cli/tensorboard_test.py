"""The event files of --tensorboard, decoded with protobuf and TensorFlow's message definitions."""

import struct
import time
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import support

try:
    from google.protobuf import unknown_fields
except ImportError:  # a version that asks the message
    unknown_fields = None


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def message_types():
    """Event, as TensorFlow's event.proto and summary.proto have it, of the fields that scalars need."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="tensorflow", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(parent, name, *fields):
        made = parent.add(name=name)
        for number, field, kind, type_name in fields:
            repeated = field == "value" and kind == kinds.TYPE_MESSAGE
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            made.field.add(name=field, number=number, type=kind, label=label, type_name=type_name)
        return made

    message(file.message_type, "Event", (1, "wall_time", kinds.TYPE_DOUBLE, None), (2, "step", kinds.TYPE_INT64, None),
            (3, "file_version", kinds.TYPE_STRING, None),
            (5, "summary", kinds.TYPE_MESSAGE, ".tensorflow.Summary"))
    summary = message(file.message_type, "Summary", (1, "value", kinds.TYPE_MESSAGE, ".tensorflow.Summary.Value"))
    message(summary.nested_type, "Value", (1, "tag", kinds.TYPE_STRING, None),
            (2, "simple_value", kinds.TYPE_FLOAT, None))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    event = pool.FindMessageTypeByName("tensorflow.Event")
    if hasattr(message_factory, "GetMessageClass"):  # from 4.22 on
        return message_factory.GetMessageClass(event)
    return message_factory.MessageFactory(pool).GetPrototype(event)


Event = message_types()


def events(path):
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        length = data[at : at + 8]
        (size,) = struct.unpack("<Q", length)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(length), "checksum of a length"
        body = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body), "checksum of a record"
        event = Event.FromString(body)
        unknown = unknown_fields.UnknownFieldSet(event) if unknown_fields else event.UnknownFields()
        assert len(unknown) == 0, "a field that TensorBoard does not know"
        found.append(event)
        at += 16 + size
    return found


def points(folder):
    """step -> {tag: value} of all files of a run, in the order TensorBoard reads them."""
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        first, *rest = events(path)
        assert first.file_version == "brain.Event:2", first
        for event in rest:
            assert 1.5e9 < event.wall_time <= time.time(), event
            found.append((event.step, {value.tag: value.simple_value for value in event.summary.value}))
    return found


class TensorBoard(support.CommandTest):
    def test_the_decoder_knows_the_published_checksums(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(crc32c(b"\xff" * 32), 0x62A8AB43)

    def check_points(self, folder):
        epochs = [r for r in support.records(folder) if r["type"] == "epoch"]
        found = points(folder)
        self.assertEqual([step for step, _ in found], [r["step"] for r in epochs])
        for (_, values), record in zip(found, epochs):
            for tag, key in (("loss/train", "train_loss"), ("loss/test", "test_loss"), ("accuracy/train", "train_top1"),
                             ("accuracy/test", "test_top1"), ("lr", "lr"), ("epoch", "epoch")):
                self.assertAlmostEqual(values[tag], record[key], delta=1e-6 * max(1, abs(record[key])))
            self.assertGreater(values["images_per_second"], 0)

    def test_every_epoch_is_a_point_with_the_logs_figures(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 3, output, "--tensorboard"))
        self.assertEqual(len(list(output.glob("events*"))), 1)
        self.check_points(output)

    @support.slow
    def test_there_are_none_unasked(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 1, output))
        self.assertEqual(list(output.glob("events*")), [])

    def test_a_continued_run_goes_on_in_a_new_file_and_repeats_no_step(self):
        output = self.folder / "run"
        words = ["--tensorboard", "--lr-scheduler", "constant"]
        self.succeed(*self.small("sgdm", 2, output, *words))
        # As if killed after the last epoch's point and before its checkpoint.
        max(output.glob("*.ckpt")).unlink()
        self.succeed("train", "--resume", output, "--epochs", "4")
        self.assertEqual(len(list(output.glob("events*"))), 2)
        self.check_points(output)

    @support.slow
    def test_turned_on_late_it_has_the_epochs_before_too(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output, "--lr-scheduler", "constant"))
        before = time.time()
        self.succeed("train", "--resume", output, "--epochs", "3", "--tensorboard")
        self.check_points(output)
        # At the times of the epochs, not of the file.
        (file,) = output.glob("events*")
        times = [event.wall_time for event in events(file)[1:]]
        self.assertLess(times[0], times[1])
        self.assertLessEqual(times[1], before)
        self.assertGreaterEqual(times[2], before)

    @support.slow
    def test_a_file_cut_off_by_a_crash_loses_no_point(self):
        output = self.folder / "run"
        self.succeed(*self.small("sgdm", 2, output, "--tensorboard", "--lr-scheduler", "constant"))
        (file,) = output.glob("events*")
        file.write_bytes(file.read_bytes()[:-3])
        self.succeed("train", "--resume", output, "--epochs", "3")
        steps = []
        for path in sorted(output.glob("events*"))[1:]:
            steps += [event.step for event in events(path)[1:]]
        self.assertEqual(steps, [r["step"] for r in support.records(output) if r["type"] == "epoch"][1:])

    @support.slow
    def test_it_changes_no_figure(self):
        with_events, without = self.folder / "with", self.folder / "without"
        self.succeed(*self.small("sgd-ph", 2, with_events, "--tensorboard"))
        self.succeed(*self.small("sgd-ph", 2, without))
        self.assertEqual((with_events / "model.pt").read_bytes(), (without / "model.pt").read_bytes())


if __name__ == "__main__":
    support.main()
