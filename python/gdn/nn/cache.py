# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a mixer remembers of the tokens that it has seen."""

from __future__ import annotations

import torch


class MixerCache:
    """State of one mixer for N sequences: the last inputs of its convolutions and its recurrent state.

    Made by `mixer.new_cache(N)`, which stands for N empty sequences. A call of the mixer continues it
    in place, so its tensors keep their addresses (CUDA graphs): a prefill, further pieces of a long
    prompt and single tokens are all the same call.

        conv       tuple of [N, D, W - 1], one per launch: the last inputs of the convolutions, oldest
                   first, in the type of the activations; q, k and v are one, their channels one behind
                   the other; empty without convolutions
        recurrent  [N, HV, V, K], float32 unless new_cache was asked for less

    To try tokens that may be rejected (speculative decoding), `mixer.verify(x, cache)` leaves the cache
    as it is and notes the state behind each of the T tokens; `accept(n)` then moves it behind the
    first n.
    """

    def __init__(self, conv, recurrent):
        self.conv = tuple(conv)
        self.recurrent = recurrent
        self._trial = None

    @property
    def num_sequences(self):
        return self.recurrent.shape[0]

    def reset(self):
        """Back to empty sequences, in place."""
        for state in (*self.conv, self.recurrent):
            state.zero_()
        self._trial = None
        return self

    def clone(self):
        """A copy that shares nothing with this cache."""
        return MixerCache([state.clone() for state in self.conv], self.recurrent.clone())

    def copy_(self, other):
        """Takes over the states of `other`, a cache of the same shapes, in place."""
        for mine, theirs in zip((*self.conv, self.recurrent), (*other.conv, other.recurrent)):
            if mine.shape != theirs.shape:
                raise ValueError(f"a state of shape {list(mine.shape)} cannot take one of {list(theirs.shape)}")
            mine.copy_(theirs)
        self._trial = None
        return self

    def reorder(self, index):
        """Sequence n becomes what sequence index[n] was (beam search). `index`: [N] integers."""
        for state in (*self.conv, self.recurrent):
            state.copy_(state.index_select(0, index))
        self._trial = None
        return self

    def accept(self, count):
        """Moves each sequence behind the first `count` tokens of the last `verify`; 0 keeps it.

        `count`: an int for all sequences, or [N] integers on the device, each in 0..T. Nothing waits for
        the device, so values of a tensor are not checked: they are clamped to 0..T.
        """
        if self._trial is None:
            raise RuntimeError("accept() needs a verify() before it: no tokens are on trial")
        inputs, states = self._trial
        tokens = states.shape[1]
        if isinstance(count, int):
            if not 0 <= count <= tokens:
                raise ValueError(f"accept({count}): the last verify() tried {tokens} tokens")
            count = torch.full((self.num_sequences,), count, device=self.recurrent.device)
        elif tuple(count.shape) != (self.num_sequences,):
            raise ValueError(f"count has shape {list(count.shape)}, the cache holds {self.num_sequences} sequences")
        count = count.to(torch.int64).clamp(0, tokens)
        sequence = torch.arange(self.num_sequences, device=count.device)
        reached = states[sequence, (count - 1).clamp(min=0)]
        keep = (count == 0).view(-1, 1, 1, 1)
        self.recurrent.copy_(torch.where(keep, self.recurrent, reached))
        for state, new in zip(self.conv, inputs):
            size = state.shape[-1]
            history = torch.cat([state, new.transpose(1, 2)], dim=-1)
            window = count.view(-1, 1, 1) + torch.arange(size, device=count.device)
            state.copy_(history.gather(2, window.expand(-1, state.shape[1], -1)))
        self._trial = None
        return self

    def _try(self, inputs, states):
        self._trial = (inputs, states)
